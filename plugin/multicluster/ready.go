// SPDX-License-Identifier: Apache-2.0

package multicluster

// Ready implements ready.Readiness. It is true once everything was listed. It is also true where the API server said
// that a resource is missing or forbidden: that keeps this plugin's zones from being served, and must not keep the
// server from serving its others.
func (m *Multicluster) Ready() bool {
	source := m.source.Load()
	if source == nil {
		return false
	}
	select {
	case <-source.Synced(): // it is settled, too, so that it has to be asked first
		return true
	default:
	}
	select {
	case <-source.Settled():
		return len(source.Missing()) > 0 // else what was listed is about to be published
	default:
		return false
	}
}
