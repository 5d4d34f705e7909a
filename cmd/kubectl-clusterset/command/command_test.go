// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestWrongCommandLines: no request is sent. Empty names, which unset variables of a shell leave, are refused: an empty context
// would be the current one, and an empty cluster every one. Flags without a meaning are refused, too.
func TestWrongCommandLines(t *testing.T) {
	server := newAPI(t, nil)
	lines := map[string]string{
		"join east": "requires at least 2", "leave": "accepts 1", "explain": "accepts 1", "explain a/b/c --context west": "a/b/c", "explain db --context west": "use NAMESPACE/SERVICE",
		"status surplus": "accepts 0", "status -o nonsense --context west": "use json or yaml",
		"stauts":                                               "Did you mean this?",
		"status --token=x":                                     "",
		"status --contexts esat":                               "`kubectl config get-contexts`",
		"test connectivity --context west":                     "select two or more with --contexts",
		"check --contexts east,west --dns 10.0.0.1":            "must be formatted as key=value",
		"check --contexts east,west --dns esat=10.0.0.1":       "--dns esat=10.0.0.1: context esat is not selected",
		"explain shop/db --dns west=10.0.0.1":                  "context west is not selected",
		"status --contexts west --controller east=10.0.0.1:80": "--controller east=10.0.0.1:80: context east is not selected",
		"leave west --contexts east,west --context east":       "--context east and a list of contexts",
		"join east west --context east":                        "--context east and a list of contexts",
		"join a b --server a":                                  "--server",
		"join a b --server a=10.0.0.1":                         "--server a=10.0.0.1: use CONTEXT=https://",
		"join a b --server a=http://10.0.0.1":                  "use CONTEXT=https://",
		"join a b --server a=https://":                         "use CONTEXT=https://",
		"join a b --server c=https://10.0.0.1":                 "one of the contexts to join",
	}
	for _, line := range []string{
		`join east ''`, `join '' east`, `leave '' --contexts east,west`, `drain '' --contexts east,west`, `undrain ''`,
		`export '' --context west`, `explain '' --context west`, `leave west --context ''`, `leave west --contexts ''`,
		`leave west --contexts west,`, `drain west --contexts ,west`, `undrain west --contexts east,,west`, `export a/db --contexts ,`,
		`unexport a/db --contexts ''`, `status --contexts east,`, `explain a/db --contexts ''`, `check --contexts ,`,
		`sysdump --contexts west,`, `coredns enable --contexts ''`, `coredns disable --contexts east,`,
		`test connectivity --contexts east,`,
		"leave west -n shop",
	} {
		lines[line] = ""
	}
	for line, want := range lines {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.Trim(args[i], "'")
		}
		if _, _, err := invoke(t, server.URL, args...); !failed(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", line, err)
		}
	}
	if seen := server.seen(); len(seen) > 0 {
		t.Errorf("it asked %v", seen)
	}
}

// TestHelp: each command says what it does, with examples.
func TestHelp(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		if command.Short == "" {
			t.Errorf("%s: nothing says what it does", command.Name())
		}
		if command.Runnable() && !command.HasSubCommands() && strings.Count(command.Example, "kubectl clusterset") < 2 {
			t.Errorf("%s has fewer than two examples", command.Name())
		}
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(newCommand(&options{}))
	var out bytes.Buffer
	err := execute(t.Context(), &options{Out: &out, version: "v1"}, []string{"--version"})
	if err != nil || out.String() != "kubectl clusterset version v1\n" {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestSysdumpOfUnreachableClusters writes an archive that says so, and
// overwrites no file.
func TestSysdumpOfUnreachableClusters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.tar.gz")
	out, progress, err := invoke(t, "https://127.0.0.1:1", "sysdump", "-o", file, "--contexts", "east,west", "--controller",
		"east="+newController(t, imports("Ready")))
	if info, missing := os.Stat(file); err != nil || missing != nil || info.Size() == 0 || out != file+"\n" ||
		!strings.Contains(progress, "2 things could not be read") {
		t.Errorf("got %v, %v: %s%s", err, missing, out, progress)
	}
	if _, _, err := invoke(t, "https://127.0.0.1:1", "sysdump", "-o", file); !failed(err) {
		t.Errorf("over a file: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
