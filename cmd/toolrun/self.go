package main

import (
	"os"
	"os/exec"
)

// selfPath is this binary, for a program that may look for others in another PATH.
func selfPath() string {
	if self, err := os.Executable(); err == nil {
		return self
	}
	return "toolrun"
}

// selfCommand is how another program starts this binary: by name where PATH leads to it, else by its path.
func selfCommand() string {
	self := selfPath()
	found, err := exec.LookPath("toolrun")
	if err != nil {
		return self
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(self)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return "toolrun"
	}
	return self
}
