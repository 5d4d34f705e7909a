// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// drain: an administrator takes the traffic away from a healthy cluster.
func drain(t *testing.T, b *bed) {
	namespace := b.namespace(t)
	s := service{namespace: namespace, name: "drained", ports: []corev1.ServicePort{
		port("tcp", corev1.ProtocolTCP, 80, 8080), port("udp", corev1.ProtocolUDP, 80, 8080),
	}}
	b.east.deploy(t, s, 1, "tcp:8080", "udp:8080")
	west := b.west.deploy(t, s, 1, "tcp:8080", "udp:8080")
	client := b.west.client(t, namespace, 0)
	watched := client.watch(t, "tcp4", s.at(80))
	watched.only(t, time.Now(), "east", "west")
	open := client.keepWith(t, b.east, "tcp4", s.at(80))
	flow := client.keepWith(t, b.east, "udp4", s.at(80))

	b.west.annotateMember(t, b.east, memberstate.AnnotationDrain, "true")
	drained := time.Now()
	away := watched.only(t, drained, "west")
	client.reaches(t, 200, "tcp4", s.at(80), west...)
	client.reaches(t, 200, "udp4", s.at(80), west...)
	// What is open stays where it is: connections, and likewise the flows of sockets that go on sending.
	open.stays(t, b.east, "east is drained")
	flow.stays(t, b.east, "east is drained, over UDP")

	b.west.annotateMember(t, b.east, memberstate.AnnotationDrain, "false")
	restored := time.Now()
	back := watched.only(t, restored, "east", "west")
	watched.intact(t, drained, fmt.Sprintf("east is drained: away after %s, back after %s", seconds(away), seconds(back)))
}

// annotateMember sets an annotation on the Secret of a member.
func (c *cluster) annotateMember(t testing.TB, of *cluster, key, value string) {
	t.Helper()
	eventually(t, "annotate the Secret of "+of.Name(), func(ctx context.Context) error {
		secret, err := c.CoreV1().Secrets(system).Get(ctx, clusterset.SecretOf(of.Name()), metav1.GetOptions{})
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
		_, err = c.CoreV1().Secrets(system).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}
