// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// mount creates the root directory of the pod: its program, the files that a kubelet adds, and its volumes. Objects for
// volumes may be created after the pod, so it retries until the pod ends, and then returns false.
func (p *pod) mount(ctx context.Context, program string) bool {
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		last = p.tryMount(request, program)
		return last == nil, nil
	})
	if err != nil {
		p.kubelet.t.Logf("pod %s/%s of %s never had its volumes: %v", p.object.Namespace, p.object.Name, p.kubelet.Cluster.Name(), last)
	}
	return err == nil
}

func (p *pod) tryMount(ctx context.Context, program string) error {
	root := p.root()
	if err := os.MkdirAll(filepath.Join(root, "tmp"), 0o700); err != nil {
		return err
	}
	if err := os.Link(program, filepath.Join(root, filepath.Base(program))); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("put the program into place: %w", err)
	}
	// There is no DNS outside of the clusters: an address for documentation (RFC 5737).
	resolver := "nameserver 192.0.2.53\n"
	if p.object.Spec.DNSPolicy == corev1.DNSClusterFirst {
		resolver = ResolvConf(p.object.Namespace, p.kubelet.DNS)
	}
	if err := write(root, "/etc/resolv.conf", []byte(resolver)); err != nil {
		return err
	}
	return p.writeVolumes(ctx, func(corev1.Volume) bool { return true })
}

// ResolvConf returns the resolv.conf of a pod with the dnsPolicy ClusterFirst.
func ResolvConf(namespace, server string) string {
	return fmt.Sprintf("search %s.svc.cluster.local svc.cluster.local cluster.local\nnameserver %s\noptions ndots:5\n",
		namespace, server)
}

// refresh writes the files of ConfigMaps again. Files of unreadable ConfigMaps stay unchanged.
func (p *pod) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_ = p.writeVolumes(ctx, func(volume corev1.Volume) bool { return volume.ConfigMap != nil })
}

// root returns the root directory of the pod.
func (p *pod) root() string { return filepath.Join(p.kubelet.Directory, string(p.object.UID)) }

func (p *pod) writeVolumes(ctx context.Context, selected func(corev1.Volume) bool) error {
	for _, mount := range p.object.Spec.Containers[0].VolumeMounts {
		for _, volume := range p.object.Spec.Volumes {
			if volume.Name != mount.Name || !selected(volume) {
				continue
			}
			files, err := p.files(ctx, volume.VolumeSource)
			if err != nil {
				return fmt.Errorf("volume %s: %w", volume.Name, err)
			}
			for name, content := range files {
				if err := write(p.root(), filepath.Join(mount.MountPath, name), content); err != nil {
					return fmt.Errorf("volume %s: %w", volume.Name, err)
				}
			}
		}
	}
	return nil
}

func write(root, path string, content []byte) error {
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// The rename is atomic, so a program never reads a partial file.
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// files returns the files of a volume.
func (p *pod) files(ctx context.Context, source corev1.VolumeSource) (map[string][]byte, error) {
	switch {
	case source.ConfigMap != nil:
		return p.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Items)
	case source.Projected != nil:
		all := map[string][]byte{}
		for _, part := range source.Projected.Sources {
			files, err := p.projected(ctx, part)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, files)
		}
		return all, nil
	}
	return nil, fmt.Errorf("it is of a kind that is not played: %+v", source)
}

func (p *pod) projected(ctx context.Context, part corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case part.ConfigMap != nil:
		return p.configMap(ctx, part.ConfigMap.Name, part.ConfigMap.Items)
	case part.ServiceAccountToken != nil:
		token, err := p.token(ctx, part.ServiceAccountToken)
		return map[string][]byte{part.ServiceAccountToken.Path: token}, err
	case part.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range part.DownwardAPI.Items {
			if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
				return nil, fmt.Errorf("file %s is of a field that is not played", item.Path)
			}
			files[item.Path] = []byte(p.object.Namespace)
		}
		return files, nil
	}
	return nil, fmt.Errorf("a part of it is of a kind that is not played: %+v", part)
}

func (p *pod) configMap(ctx context.Context, name string, items []corev1.KeyToPath) (map[string][]byte, error) {
	found, err := p.kubelet.Cluster.Client().CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if len(items) == 0 {
		for key, text := range found.Data {
			files[key] = []byte(text)
		}
	}
	for _, item := range items {
		files[item.Path] = []byte(found.Data[item.Key])
	}
	return files, nil
}

// token returns a token of the pod's service account that is bound to the pod.
func (p *pod) token(ctx context.Context, wanted *corev1.ServiceAccountTokenProjection) ([]byte, error) {
	if wanted.Audience != "" {
		return nil, fmt.Errorf("a token for %s is not played", wanted.Audience)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: wanted.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID,
		},
	}}
	made, err := p.kubelet.Cluster.Client().CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx,
		p.object.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return []byte(made.Status.Token), nil
}
