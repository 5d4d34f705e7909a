// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"regexp"
	"time"
)

// steady is a fault scenario in which DNS always has answers for all services.
func steady(run func(s *Set, east, west, north *Cluster)) func(*Set) {
	return fault(func(s *Set, east, west, north *Cluster) {
		defer s.answersStay()()
		run(s, east, west, north)
	})
}

// podAddresses matches an answer that consists of pods of west and north.
var podAddresses = regexp.MustCompile(`^(10\.6[56]\.[\d.]+ ?)+$`)

// answersStay asserts, until the returned function is called, that DNS in all clusters answers for the services of
// healthy: with the current VIP, or with addresses that are exported.
func (s *Set) answersStay() (stop func()) {
	before, wrong := map[string]string{}, map[string]bool{}
	look := func(check func(question, answer string)) {
		for _, c := range s.clusters {
			for service := range healthy {
				check(service+" in "+c.Name, c.DNS.Text(service, s.namespace))
			}
		}
	}
	look(func(question, answer string) { before[question] = answer })
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			look(func(question, answer string) {
				if answer != before[question] &&
					(!podAddresses.MatchString(answer) || !podAddresses.MatchString(before[question])) {
					wrong[question+" is answered with "+answer] = true
				}
			})
		}
	}()
	return func() {
		close(done)
		<-ended
		for each := range wrong {
			s.Error(each)
		}
	}
}
