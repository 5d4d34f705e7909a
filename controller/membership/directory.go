// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// suffixes are those of kubeconfigs. The rest of a file's name is the id of the cluster.
var suffixes = []string{".kubeconfig", ".yaml", ".yml"}

// link is the link to the files of a volume.
const link = "..data"

// maxBytes bounds a file. A Secret has no more.
const maxBytes = 1 << 20

// A directory has the kubeconfigs of members, such as the volume of a Secret.
type directory struct{ name, path string }

// String implements member.Source.
func (s *directory) String() string { return s.name }

// List implements member.Source. A file that cannot be read is a candidate, too.
func (s *directory) List(context.Context) ([]*member.Candidate, error) {
	// The volume of a Secret is replaced by changing a link: all files are read of one version.
	path := s.path
	if _, err := os.Lstat(filepath.Join(path, link)); err == nil {
		if path, err = filepath.EvalSymlinks(filepath.Join(path, link)); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var candidates []*member.Candidate
	for _, entry := range entries {
		id, ok := idOf(entry.Name())
		if !ok || entry.IsDir() {
			continue
		}
		c := &member.Candidate{Cluster: id, Kind: member.KindFile, Name: filepath.Join(s.path, entry.Name())}
		c.Kubeconfig, c.Err = read(filepath.Join(path, entry.Name()))
		if errors.Is(c.Err, os.ErrNotExist) {
			return nil, fmt.Errorf("the directory changed meanwhile: %w", c.Err)
		}
		candidates = append(candidates, c)
	}
	return candidates, nil
}

// idOf returns the id in the name of a file, and whether the file is a kubeconfig.
func idOf(name string) (id string, ok bool) {
	for _, suffix := range suffixes {
		if id, ok := strings.CutSuffix(name, suffix); ok && id != "" && !strings.HasPrefix(id, ".") {
			return id, true
		}
	}
	return "", false
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file: put the kubeconfig there", path))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes: put a kubeconfig there", path, maxBytes)
	}
	return data, err
}
