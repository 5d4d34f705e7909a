// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	program "github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/command"
	kubectl "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/command"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

// TestReference compares the lists in docs/reference, one below each of these headings, with the code and its comments.
// With REFERENCE=write, it writes the lists.
func TestReference(t *testing.T) {
	constants := constantsOf(t)
	reasons := regexp.MustCompile(`\.(?:Event|[Rr]eason|Invalid)[A-Z]|^liveness\.`)
	in := map[string]int{} // how many lists contain each constant
	list := func(pattern string) string {
		var items []string
		for _, c := range constants {
			if regexp.MustCompile(pattern).MatchString(c.name + c.place) {
				in[c.name]++
				items = append(items, item("`"+c.value+"`"+c.note+strings.TrimPrefix(c.place, " on the Secret of a member"), c.meaning))
			}
		}
		return strings.Join(items, "")
	}
	const events, keys = "conditions-and-events.md", "annotations-and-labels.md"
	for _, each := range []struct{ page, heading, want string }{
		{"controller-flags.md", "Flags", flagsList(t, flagsOf(program.Command("").Flags()))},
		{"kubectl-clusterset.md", "Commands", commandsList(kubectl.Command())},
		{"kubectl-clusterset.md", "Flags", flagsList(t, flagsOfAll(kubectl.Command()))},
		{"metrics.md", "Metrics", metricsList(t)},
		{events, "Valid", list(`^(export|reconciler)\.Invalid`)},
		{events, "Ready", list(`^(merge|apply)\.[Rr]eason`)},
		{events, "PreferCluster, AllowedClusters, Weights", list(`^placement\.Reason`)},
		{events, "Events", list(`\.Event`)},
		{events, "Member states", list(`^liveness\.`)},
		{events, "Export problems", list(`^export\.Reason`)},
		{keys, "On ServiceExports", list(`Annotation\w+ (in spec\.exportedAnnotations|on a ServiceExport)$`)},
		{keys, "On other objects", list(`(Annotation\w*|Label) on a (ServiceImport|Namespace|Node|ServiceAccount|Secret)\b`)},
		{keys, "On Secrets of members", list(`(Annotation\w*|Label) on the Secret of a member\b`)},
	} {
		hold(t, each.page, each.heading, each.want)
	}
	for _, c := range constants {
		if reasons.MatchString(c.name) && in[c.name] != 1 {
			t.Errorf("%d lists in docs/reference have %s", in[c.name], c.name)
		}
	}
}

// hold compares the first list below a heading of a page, or writes the list.
func hold(t *testing.T, page, heading, want string) {
	t.Helper()
	path := filepath.Join(root, "docs", "reference", page)
	text := read(t, path)
	place := regexp.MustCompile(`(?m)^#+ ` + heading + `\n(?:[^#\n-].*\n|\n)*((?:(?:-|  ).*\n)+)`).FindStringSubmatchIndex(text)
	switch {
	case place == nil:
		t.Errorf("%s has no list below %s", path, heading)
	case text[place[2]:place[3]] == want:
	case os.Getenv("REFERENCE") != "write":
		t.Errorf("%s, %s: differs from the code: run make reference", path, heading)
	default:
		must(t, os.WriteFile(path, []byte(text[:place[2]]+want+text[place[3]:]), 0o600))
	}
}

// item returns a list item, wrapped at 100 characters.
func item(name, meaning string) string {
	line := "-"
	var lines []string
	for word := range strings.FieldsSeq(name + ": " + meaning) {
		if len(line)+1+len(word) > 100 {
			lines, line = append(lines, line), " "
		}
		line += " " + word
	}
	return strings.Join(append(lines, line), "\n") + "\n"
}

// A constant is a string constant of the controller with a comment for users: "Name (note): meaning", or "Name on an
// object: meaning". Note and place begin with a space.
type constant struct{ name, value, note, place, meaning string }

func constantsOf(t *testing.T) (constants []constant) {
	definition := regexp.MustCompile(`(?m)^((?:\t?//.*\n)+)\t?(?:const )?(\w+)(?: \w+)? += (?:((?:export\.)?Domain \+ )?"([^"]*)"|(?:\w+\.)?(\w+))(?: +//.*)?$`)
	values := map[string]string{} // by name without package, which is unique
	slashes := regexp.MustCompile(`(?m)^\s*//`)
	form := regexp.MustCompile(`^\w+( \([\w, ]+\))?( (?:on|in) [^:]+)?: (.+)$`)
	for _, f := range goFiles(t) {
		if f.test() || !strings.HasPrefix(f.path, "controller/") {
			continue
		}
		for _, match := range definition.FindAllStringSubmatch(f.text, -1) {
			value := cmp.Or(match[4], values[match[5]])
			if match[3] != "" {
				value = export.Domain + value
			}
			values[match[2]] = value
			comment := strings.Fields(slashes.ReplaceAllString(match[1], ""))
			if found := form.FindStringSubmatch(strings.Join(comment, " ")); found != nil && value != "" {
				constants = append(constants, constant{
					name:  f.pkg + "." + match[2],
					value: value, note: found[1], place: found[2], meaning: strings.TrimSuffix(found[3], "."),
				})
			}
		}
	}
	return constants
}

// commandsList returns the list of all commands.
func commandsList(root *cobra.Command) string {
	var items []string
	for _, command := range commandsOf(root) {
		line := strings.TrimSuffix(strings.TrimPrefix(command.UseLine(), root.CommandPath()+" "), " [flags]")
		items = append(items, item("`"+line+"`", command.Short))
	}
	return strings.Join(items, "")
}

// commandsOf returns the runnable commands below a command, by name.
func commandsOf(command *cobra.Command) []*cobra.Command {
	if !command.HasSubCommands() {
		return []*cobra.Command{command}
	}
	var all []*cobra.Command
	for _, sub := range command.Commands() {
		all = append(all, commandsOf(sub)...)
	}
	return all
}

// flagsList returns the list of flags by name. Flags with the same name and usage occur once.
func flagsList(t *testing.T, flags []*pflag.Flag) string {
	t.Helper()
	items := map[string]string{}
	for _, flag := range flags {
		value, usage := pflag.UnquoteUsage(flag)
		if usage == "" {
			t.Errorf("--%s has no usage", flag.Name)
		}
		name := strings.TrimSpace("--" + flag.Name + " " + value)
		if flag.Shorthand == flag.Name {
			name = name[1:]
		}
		usage = strings.ReplaceAll(usage, "<", `\<`)
		if preset := strings.Trim(flag.DefValue, "[]"); preset != "" && preset != "false" {
			usage += "; by default `" + preset + "`"
		}
		items[flag.Name+" "+usage] = item("`"+name+"`", usage)
	}
	return sorted(items)
}

func sorted(items map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(items)) {
		text.WriteString(items[key])
	}
	return text.String()
}

// flagsOfAll returns the flags of all commands except kubectl's flags.
func flagsOfAll(root *cobra.Command) []*pflag.Flag {
	all := []*pflag.Flag{root.Flag("kubeconfig"), root.Flag("system-namespace")}
	for _, command := range commandsOf(root) {
		all = append(all, flagsOf(command.LocalNonPersistentFlags())...)
	}
	return all
}

// flagsOf returns the flags of a set except --help and --version.
func flagsOf(set *pflag.FlagSet) []*pflag.Flag {
	var flags []*pflag.Flag
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" && flag.Name != "version" {
			flags = append(flags, flag)
		}
	})
	return flags
}

// metricsList returns the list of metrics with their labels, by name.
func metricsList(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	_, err := statusz.NewServer(registry, "")
	must(t, err)
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	parts := regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]+)", .* variableLabels: ({[^}]*})`)
	items := map[string]string{}
	for each := range descriptions {
		match := parts.FindStringSubmatch(each.String())
		if match == nil {
			t.Fatalf("no name or no help: %s", each)
		}
		items[match[1]] = item("`"+match[1]+strings.TrimSuffix(match[3], "{}")+"`", match[2])
	}
	return sorted(items)
}
