// SPDX-License-Identifier: Apache-2.0

package multicluster

// Ready implements ready.Readiness. It is true once everything was listed. It is also true where the API server said
// that a resource is missing or forbidden: that keeps this plugin's zones from being served, and must not keep the
// server from serving its others. After a reload it is true while there are answers of before it.
func (m *Multicluster) Ready() bool {
	source := m.source.Load()
	if source == nil {
		return false
	}
	if m.before.Load() != nil {
		return true
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
