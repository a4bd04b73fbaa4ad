// A command-line program in Go, without a line for this host.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d words for %s\n", len(strings.Fields(string(text))), strings.Join(os.Args[1:], " "))
}
