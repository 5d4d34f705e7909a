// SPDX-License-Identifier: Apache-2.0

package state

import (
	"net/url"
	"reflect"
	"strings"
	"unicode"
)

// maxText bounds a text that another cluster may have written, in bytes.
const maxText = 1024

// Safe returns a text that another cluster may have written for an Event or a finding: at most 1 KiB, on one line, and
// without characters that control a terminal.
func Safe(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-3], "") + "..."
	}
	return Escape(strings.ReplaceAll(text, "\n", "; "))
}

// Escape replaces the characters of a text that control a terminal, except line breaks and tabs, by U+FFFD.
func Escape(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// WithoutLogin returns a URL without user name and password. A text that is no URL stays as it is.
func WithoutLogin(address string) string {
	if parsed, err := url.Parse(address); err == nil {
		parsed.User = nil
		return parsed.String()
	}
	return address
}

// Clean makes all texts of a document Safe. document is a pointer. Clean copies slices, because caches may share them.
func Clean(document any) { clean(reflect.ValueOf(document)) }

func clean(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			clean(value.Elem())
		}
	case reflect.Slice:
		value.Set(reflect.AppendSlice(value.Slice3(0, 0, 0), value))
		for i := range value.Len() {
			clean(value.Index(i))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Field(i); field.CanSet() {
				clean(field)
			}
		}
	case reflect.String:
		value.SetString(Safe(value.String()))
	}
}
