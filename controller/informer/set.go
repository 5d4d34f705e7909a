// SPDX-License-Identifier: Apache-2.0

package informer

import "slices"

// few is up to how many items a set is a list, which takes least and is searched quickly.
const few = 32

// A set is the items with one value in an index. The nil set is empty.
type set struct {
	list []*item
	many map[*item]struct{} // instead of list if there are, or were, more than few
}

func (s *set) len() int {
	if s == nil {
		return 0
	}
	return len(s.list) + len(s.many)
}

func (s *set) add(one *item) {
	switch {
	case s.many != nil:
		s.many[one] = struct{}{}
	case len(s.list) < few:
		s.list = append(s.list, one)
	default:
		s.many = make(map[*item]struct{}, 2*few)
		for _, each := range append(s.list, one) {
			s.many[each] = struct{}{}
		}
		s.list = nil
	}
}

func (s *set) remove(one *item) {
	if s == nil {
		return
	}
	if s.many != nil {
		delete(s.many, one)
		return
	}
	if at := slices.Index(s.list, one); at >= 0 {
		s.list = slices.Delete(s.list, at, at+1)
	}
}

func (s *set) each(do func(*item)) {
	if s == nil {
		return
	}
	for _, one := range s.list {
		do(one)
	}
	for one := range s.many {
		do(one)
	}
}
