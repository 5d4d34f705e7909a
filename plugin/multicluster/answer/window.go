// SPDX-License-Identifier: Apache-2.0

package answer

// window is an order in which to take some of n records. If all are taken, it keeps their order. Else it starts at the
// client's point and strides, so that every record is chosen with equal probability and the choice is spread over all
// clusters. The order depends on n and the point alone: A and AAAA of the same endpoints take the same ones.
type window struct{ n, at, stride int }

func newWindow(n int, spread bool, point uint64) window {
	if !spread || n < 2 {
		return window{n: n, stride: 1}
	}
	stride := max(1, n*5/8) // near the golden section, which spreads any number of steps well
	for gcd(stride, n) != 1 {
		stride++
	}
	return window{n: n, at: int(point % uint64(n)), stride: stride % n}
}

// next is the number of the next record. There are n.
func (w *window) next() int {
	at := w.at
	if w.at += w.stride; w.at >= w.n {
		w.at -= w.n
	}
	return at
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
