// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

const (
	defaultZone           = "clusterset.local."
	defaultTTL            = 5 // seconds; the documentation names this value
	maxTTL                = 3600
	defaultStartupTimeout = 5 * time.Second
)

// option is a directive in the plugin's block of the Corefile.
type option struct {
	// form describes the arguments.
	form string
	// least and most limit the number of arguments.
	least, most int
	set         func(m *Multicluster, args []string) error
}

const unlimited = math.MaxInt

// options lists all directives.
var options = map[string]option{
	"kubeconfig": {"PATH [CONTEXT]", 1, 2, func(m *Multicluster, args []string) error {
		m.options.Kubeconfig, m.options.Context = args[0], append(args, "")[1]
		return nil
	}},
	"namespaces": {"NAMESPACE...", 1, unlimited, func(m *Multicluster, args []string) error {
		for _, namespace := range args {
			if validation.IsDNS1123Label(namespace) != nil {
				return fmt.Errorf("%q is no name of a namespace", namespace)
			}
		}
		m.options.Namespaces = append(m.options.Namespaces, args...)
		return nil
	}},
	"namespace_labels": {"EXPRESSION", 1, unlimited, func(m *Multicluster, args []string) error {
		return selector(args, &m.options.NamespaceLabels)
	}},
	"labels": {"EXPRESSION", 1, unlimited, func(m *Multicluster, args []string) error {
		return selector(args, &m.options.Labels)
	}},
	"ttl": {"SECONDS", 1, 1, func(m *Multicluster, args []string) error {
		seconds, err := number(args[0], 0, maxTTL)
		m.config.TTL = uint32(seconds)
		return err
	}},
	"noendpoints": {"", 0, 0, func(m *Multicluster, args []string) error {
		m.options.NoEndpoints = true
		return nil
	}},
	"fallback": {"[services] [endpoints]", 1, unlimited, func(m *Multicluster, args []string) error {
		for _, arg := range args {
			switch arg {
			case "services":
				m.options.FallbackServices = true
			case "endpoints":
				m.options.FallbackEndpoints = true
			default:
				return errForm
			}
		}
		return nil
	}},
	"groups": {"GROUP...", 1, unlimited, func(m *Multicluster, args []string) error {
		known := map[string]watch.Resource{
			watch.GroupMCS: watch.ServiceImports, watch.GroupGKE: watch.GKEServiceImports,
		}
		for _, group := range args {
			switch resource, ok := known[group]; {
			case !ok:
				return fmt.Errorf("%q is neither %s nor %s", group, watch.GroupMCS, watch.GroupGKE)
			case !slices.Contains(m.options.Imports, resource):
				m.options.Imports = append(m.options.Imports, resource)
			}
		}
		return nil
	}},
	"fallthrough": {"[ZONES...]", 0, unlimited, func(m *Multicluster, args []string) error {
		m.Fall.SetZonesFromArgs(args)
		return checkZones(args)
	}},
	"ignore": {"empty_service", 1, 1, func(m *Multicluster, args []string) error {
		if args[0] != "empty_service" {
			return errForm
		}
		m.config.IgnoreEmpty = true
		return nil
	}},
	"startup_timeout": {"DURATION", 1, 1, func(m *Multicluster, args []string) error {
		timeout, err := time.ParseDuration(args[0])
		if err != nil || timeout < 0 {
			return fmt.Errorf("%q is no duration, like 5s", args[0])
		}
		m.startupTimeout = timeout
		return nil
	}},
	"cluster": {"ID", 1, 1, func(m *Multicluster, args []string) error {
		m.config.Cluster = strings.ToLower(args[0])
		if !record.IsClusterID(m.config.Cluster) {
			return fmt.Errorf("%q is no id of a cluster", args[0])
		}
		return nil
	}},
	"prefer": {"none|cluster|zone", 1, 1, func(m *Multicluster, args []string) error {
		preferences := map[string]record.Preference{
			"none": record.PreferNone, "cluster": record.PreferCluster, "zone": record.PreferZone,
		}
		var known bool
		if m.prefer, known = preferences[args[0]]; !known {
			return fmt.Errorf("%q is no preference", args[0])
		}
		m.options.Nodes = m.prefer == record.PreferZone
		return nil
	}},
	"zonal": {"", 0, 0, func(m *Multicluster, args []string) error {
		m.options.TopologyZones = true
		return nil
	}},
	"max_answers": {"N", 1, 1, func(m *Multicluster, args []string) (err error) {
		m.maxAnswers, err = number(args[0], 1, 65535)
		return err
	}},
}

// errForm reports arguments that an option does not accept.
var errForm = fmt.Errorf("wrong arguments")

// number reads a whole number.
func number(text string, least, greatest int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > greatest {
		return 0, fmt.Errorf("%q is no number from %d to %d", text, least, greatest)
	}
	return n, nil
}

// selector parses a label selector.
func selector(args []string, into *string) error {
	parsed, err := labels.Parse(strings.Join(args, " "))
	if err != nil {
		return fmt.Errorf("no label selector: %w", err)
	}
	*into = parsed.String()
	return nil
}

// parse reads the plugin's block of a server block.
func parse(c *caddy.Controller) (*Multicluster, error) {
	m := newMulticluster()
	m.server = dnsserver.GetConfig(c)
	c.Next() // the name of the plugin
	reverse, err := parseZones(c, m)
	if err != nil {
		return nil, err
	}
	for c.NextBlock() {
		if err := parseOption(c, m); err != nil {
			return nil, err
		}
	}
	if c.Next() {
		return nil, c.Err(plugin.ErrOnce.Error())
	}
	switch {
	case len(m.options.Namespaces) > 0 && m.options.NamespaceLabels != "":
		return nil, c.Err("namespaces and namespace_labels cannot both be set")
	case m.options.NoEndpoints && (m.options.FallbackEndpoints || m.config.IgnoreEmpty || m.options.TopologyZones):
		return nil, c.Err("noendpoints cannot be set with fallback endpoints, ignore or zonal")
	case len(m.config.Zones) == 0:
		return nil, c.Errf("%q are reverse zones: list the zone of the names that their records hold as well", reverse)
	case len(reverse) > 0 && m.config.Cluster == "":
		return nil, c.Errf(
			"%q are reverse zones, which have no records for endpoints of the local cluster: name it with cluster ID",
			reverse)
	case m.prefer > record.PreferNone && m.config.Cluster == "":
		return nil, c.Err("prefer needs to know which cluster this is: say it with cluster ID")
	}
	m.config.Zones, m.config.Reverse = append(m.config.Zones, reverse...), len(reverse)
	return m, nil
}

// parseZones reads the zones: the arguments, or the zones of the server block. It adds all but the reverse zones to the
// configuration and returns the reverse zones. In a server block for the root zone, the default zone replaces the root
// zone, so that the plugin is not authoritative for all names by accident.
func parseZones(c *caddy.Controller, m *Multicluster) (reverse []string, err error) {
	args := c.RemainingArgs()
	if err := checkZones(args); err != nil {
		return nil, c.Err(err.Error())
	}
	for _, zone := range plugin.OriginsFromArgsOrServerBlock(args, c.ServerBlockKeys) {
		if zone == "." && len(args) == 0 {
			zone = defaultZone
		}
		into := &m.config.Zones
		if dnsutil.IsReverse("."+zone) > 0 { // in-addr.arpa itself counts as a reverse zone
			into = &reverse
		}
		if !slices.Contains(*into, zone) {
			*into = append(*into, zone)
		}
	}
	return reverse, nil
}

// checkZones reports an argument that is no zone: CoreDNS's functions leave it out silently.
func checkZones(args []string) error {
	for _, arg := range args {
		if len(plugin.Host(arg).NormalizeExact()) == 0 {
			return fmt.Errorf("%q is no zone", arg)
		}
	}
	return nil
}

// parseOption parses one directive.
func parseOption(c *caddy.Controller, m *Multicluster) error {
	key := c.Val()
	o, ok := options[key]
	if !ok {
		return c.Errf("unknown property '%s'; allowed are: %s", key,
			strings.Join(slices.Sorted(maps.Keys(options)), ", "))
	}
	args, err := c.RemainingArgs(), errForm
	if len(args) >= o.least && len(args) <= o.most {
		err = o.set(m, args)
	}
	if err != nil {
		return c.Errf("%s: %v; the form is: %s", key, err, strings.TrimSpace(key+" "+o.form))
	}
	return nil
}
