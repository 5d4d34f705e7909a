// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// Values of --logging-format, which are those of Kubernetes' own programs.
const (
	logText = "text"
	logJSON = "json"
)

// setLogging has the whole process log as the flags say.
func setLogging(format string, flags *pflag.FlagSet) error {
	switch format {
	case logText:
		return nil // klog's own
	case logJSON:
	default:
		return fmt.Errorf("--logging-format %q: use %s or %s", format, logText, logJSON)
	}
	verbosity, err := strconv.Atoi(flags.Lookup("v").Value.String())
	if err != nil {
		return fmt.Errorf("-v: %w", err)
	}
	klog.SetSlogLogger(slog.New(jsonHandler(os.Stderr, verbosity)))
	return nil
}

// jsonHandler writes one JSON object a line. Objects of Kubernetes are written
// as name and namespace, as Kubernetes' own programs do.
func jsonHandler(out io.Writer, verbosity int) slog.Handler {
	return slog.NewJSONHandler(out, &slog.HandlerOptions{
		Level: slog.Level(-verbosity),
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if object, ok := attr.Value.Any().(logr.Marshaler); ok {
				attr.Value = slog.AnyValue(object.MarshalLog())
			}
			return attr
		},
	})
}
