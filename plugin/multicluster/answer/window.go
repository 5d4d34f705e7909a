// SPDX-License-Identifier: Apache-2.0

package answer

// window is an order in which to take some of n things. Taken in full it keeps their order. Taken in part it starts at
// a point of the asker's choice and strides, so that each thing is as likely to be taken as any other, and what is taken
// is spread over all: it does not come from one cluster alone because that cluster's endpoints lie side by side. The
// order depends on nothing but n and the point: A and AAAA of the same endpoints take the same ones.
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

// next is the number of the next thing. There are n.
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
