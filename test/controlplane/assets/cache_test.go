// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/flock"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// helperVariable makes the test binary a program that builds into the directory that it names.
const helperVariable = "ASSETS_TEST_HELPER"

func TestMain(m *testing.M) {
	if root := os.Getenv(helperVariable); root != "" {
		cache, err := smallCache(root)
		if err == nil {
			err = cache.fill(context.Background(), os.Stderr, []Program{Etcd, Kwok})
		}
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// smallModule is built in seconds, also where the toolchain has nothing cached.
var smallModule = map[string]string{
	"source/go.mod":        "module example.com/programs\n\ngo 1.26\n",
	"source/store/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"store\") }\n",
	"source/play/main.go":  "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"play\") }\n",
}

// smallCache is a cache below root for the small module there.
func smallCache(root string) (*cache, error) {
	tie, err := filepath.Abs("tie")
	if err != nil {
		return nil, err
	}
	return &cache{directory: filepath.Join(root, "cache", "key"), recipe: recipe{
		source:   filepath.Join(root, "source"),
		packages: map[Program]string{Etcd: "example.com/programs/store", Kwok: "example.com/programs/play"},
		tie:      tie,
	}}, os.MkdirAll(filepath.Join(root, "cache"), 0o755)
}

func newSmallCache(t *testing.T) (*cache, string) {
	t.Helper()
	root := writeFiles(t, smallModule)
	cache, err := smallCache(root)
	if err != nil {
		t.Fatal(err)
	}
	return cache, root
}

// listCache is what there is in the cache: of the key itself, its programs, sorted.
func listCache(t *testing.T, c *cache) string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*", "*/*"} {
		paths, err := filepath.Glob(filepath.Join(filepath.Dir(c.directory), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			relative, err := filepath.Rel(filepath.Dir(c.directory), path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(relative, "key.building/") {
				found = append(found, relative)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func TestFillBuildsOnceAndOnlyWhatIsMissing(t *testing.T) {
	cache, _ := newSmallCache(t)
	if err := cache.fill(t.Context(), &bytes.Buffer{}, []Program{Etcd}); err != nil {
		t.Fatal(err)
	}
	if got, want := listCache(t, cache), "key key.lock key/etcd"; got != want {
		t.Errorf("after the first build: %s, want %s", got, want)
	}
	before, err := os.Stat(filepath.Join(cache.directory, "etcd"))
	if err != nil {
		t.Fatal(err)
	}

	var group sync.WaitGroup
	outputs := make([]bytes.Buffer, 3)
	for i := range outputs {
		group.Go(func() {
			if err := cache.fill(t.Context(), &outputs[i], []Program{Etcd, Kwok}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got, want := listCache(t, cache), "key key.lock key/etcd key/kwok"; got != want {
		t.Errorf("after all builds: %s, want %s", got, want)
	}
	builders := 0
	for i := range outputs {
		if strings.Contains(outputs[i].String(), "built kwok\n") {
			builders++
		}
	}
	if builders != 1 {
		t.Errorf("%d of 3 have built", builders)
	}
	if after, err := os.Stat(filepath.Join(cache.directory, "etcd")); err != nil || !os.SameFile(before, after) {
		t.Errorf("a program that was there is built again: %v", err)
	}
	output, err := exec.Command(filepath.Join(cache.directory, "kwok")).Output()
	if err != nil || string(output) != "play\n" {
		t.Errorf("the built program says %q, %v", output, err)
	}
}

func TestFillCleansAwayOtherLeftovers(t *testing.T) {
	cache, root := newSmallCache(t)
	for _, name := range []string{"dead.building/tmp", "alive.building/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, "cache", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := flock.Try(filepath.Join(root, "cache", "alive"+locked))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := cache.fill(t.Context(), &bytes.Buffer{}, []Program{Etcd}); err != nil {
		t.Fatal(err)
	}
	if got, want := listCache(t, cache), "alive.building alive.building/tmp alive.lock dead.lock key key.lock key/etcd"; got != want {
		t.Errorf("in the cache is %s, want %s", got, want)
	}
}

func TestFillThatFails(t *testing.T) {
	cache, root := newSmallCache(t)
	wrong := filepath.Join(root, "source", "store", "wrong.go")
	if err := os.WriteFile(wrong, []byte("package main\n\nvar x = undefinedName\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := cache.fill(t.Context(), &bytes.Buffer{}, []Program{Etcd, Kwok})
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedName") {
		t.Errorf("the error does not say what the compiler says: %v", err)
	}
	if got, want := listCache(t, cache), "key key.lock"; got != want {
		t.Errorf("in the cache is %s, want %s", got, want)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if err := cache.fill(ctx, &bytes.Buffer{}, []Program{Kwok}); !errors.Is(err, interrupted) {
		t.Errorf("an interrupted build: %v", err)
	}
}

// A build that is killed leaves no process and nothing that counts as built, and the next one puts it right.
func TestFillThatIsKilled(t *testing.T) {
	cache, root := newSmallCache(t)
	gocache := filepath.Join(root, "gocache") // empty, so that the build takes its time
	helper := exec.Command(os.Args[0])
	helper.Env = append(os.Environ(), helperVariable+"="+root, "GOCACHE="+gocache)
	if err := process.StartTied(helper); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = helper.Process.Kill() }()
	gone := make(chan error, 1)
	go func() { gone <- helper.Wait() }()

	// The go command works in the module, and the compilers under it in the directories of packages.
	var toolchain map[int]int
	for deadline := time.After(time.Minute); !hasCompiler(toolchain); {
		select {
		case <-deadline:
			t.Fatal("no compiler was seen")
		case err := <-gone:
			t.Fatalf("the helper ended before a compiler was seen: %v", err)
		case <-time.After(time.Millisecond):
			toolchain = openToolchain(t, cache.directory+building)
		}
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for pid, descriptor := range toolchain {
		poll := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}} // readable once the process has ended
		if count, err := unix.Poll(poll, 20_000); err != nil || count != 1 {
			t.Errorf("process %d survives: %v", pid, err)
		}
	}
	if err := <-gone; err == nil {
		t.Error("the killed helper has ended well")
	}
	for deadline := time.After(20 * time.Second); ; {
		survivors := openToolchain(t, cache.directory+building)
		if len(survivors) == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("processes of the build survive: %v", survivors)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if got, want := listCache(t, cache), "key key.building key.lock"; got != want {
		t.Errorf("after the kill: %s, want %s", got, want)
	}

	if err := cache.fill(t.Context(), &bytes.Buffer{}, []Program{Etcd, Kwok}); err != nil {
		t.Fatal(err)
	}
	if got, want := listCache(t, cache), "key key.lock key/etcd key/kwok"; got != want {
		t.Errorf("after the next build: %s, want %s", got, want)
	}
}

// openToolchain opens a descriptor of each process of the Go toolchain that builds in work: its process id → descriptor.
// It knows them by their environment.
func openToolchain(t *testing.T, work string) map[int]int {
	t.Helper()
	found := map[int]int{}
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range environments {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environment, []byte("GOTMPDIR="+work)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if descriptor, err := unix.PidfdOpen(pid, 0); err == nil {
			found[pid] = descriptor
			t.Cleanup(func() { unix.Close(descriptor) })
		}
	}
	return found
}

// hasCompiler tells whether a process of the toolchain is one that the go command started.
func hasCompiler(toolchain map[int]int) bool {
	for pid := range toolchain {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		if err == nil && (string(name) == "compile\n" || string(name) == "asm\n") {
			return true
		}
	}
	return false
}
