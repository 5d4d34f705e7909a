// SPDX-License-Identifier: Apache-2.0

// Package sysdump writes what a bug report needs into one archive. It has no
// Secrets, and leaves out the environment of containers and the annotation of
// kubectl apply, which may have credentials.
package sysdump

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// Options say what goes into the archive.
type Options struct {
	Clusters []*cluster.Cluster
	// Reports are files about all clusters by name, such as status.txt.
	Reports map[string]string
	// Now is the time of the files.
	Now time.Time
}

// perCluster bounds how long one cluster may take.
const perCluster = 3 * time.Minute

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Write writes the archive, a gzipped tar with one folder of the given name. What
// cannot be read is named in a file errors.txt of the cluster; it returns how
// many such errors there are.
func Write(ctx context.Context, out io.Writer, folder string, o Options) (int, error) {
	dumps := make([]*dump, len(o.Clusters))
	var group sync.WaitGroup
	for i, c := range o.Clusters {
		dumps[i] = &dump{cluster: c, files: map[string]string{}}
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, perCluster)
			defer cancel()
			dumps[i].collect(ctx)
		})
	}
	group.Wait()
	files, folders, failed := map[string]string{}, map[string]bool{}, 0
	maps.Copy(files, o.Reports)
	for i, d := range dumps {
		folder := unsafe.ReplaceAllString(d.cluster.Context, "_")
		if folders[folder] {
			folder = fmt.Sprintf("%s-%d", folder, i)
		}
		folders[folder] = true
		failed += len(d.errors)
		if len(d.errors) > 0 {
			d.files["errors.txt"] = strings.Join(d.errors, "\n") + "\n"
		}
		for name, text := range d.files {
			files[path.Join(folder, name)] = text
		}
	}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if err := archive.WriteHeader(&tar.Header{
			Name: path.Join(folder, name), Mode: 0o600, Size: int64(len(text)), ModTime: o.Now, Format: tar.FormatPAX,
		}); err != nil {
			return failed, err
		}
		if _, err := io.WriteString(archive, text); err != nil {
			return failed, err
		}
	}
	if err := archive.Close(); err != nil {
		return failed, err
	}
	return failed, zipped.Close()
}
