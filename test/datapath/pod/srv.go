// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
)

// srv looks up SRV records as programs do.
func srv(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("srv takes a service, a protocol and a name; got %q", args)
	}
	_, records, err := net.DefaultResolver.LookupSRV(context.Background(), args[0], args[1], args[2])
	for _, record := range records {
		fmt.Printf("%s:%d\n", record.Target, record.Port)
	}
	return err
}
