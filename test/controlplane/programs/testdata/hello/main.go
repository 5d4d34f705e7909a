// SPDX-License-Identifier: Apache-2.0

// Command hello is a small program to build.
package main

import "fmt"

func main() { fmt.Println("hello") }
