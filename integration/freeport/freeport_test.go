package freeport

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const childEnv = "KVNET_TEST_CHOOSES_ADDRESSES"

// each is how many addresses each process of the test asks for: so many that two
// processes that didn't know of each other would meet.
const each = 300

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	for range each {
		address, err := Address()
		if err != nil {
			panic(err)
		}
		if _, err := os.Stdout.WriteString(address + "\n"); err != nil {
			panic(err)
		}
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // until all have chosen
}

func TestNoTwoProcessesGetOneAddress(t *testing.T) {
	seen := map[string]bool{}
	add := func(address string) {
		if seen[address] {
			t.Errorf("%s was given twice", address)
		}
		seen[address] = true
	}
	for range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"=1")
		hold, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = hold.Close()
			if err := child.Wait(); err != nil {
				t.Errorf("a process that chose addresses: %v", err)
			}
		})
		text := make([]byte, 0, each*len("127.0.0.1:15000\n"))
		for strings.Count(string(text), "\n") < each {
			part := make([]byte, 4096)
			n, err := out.Read(part)
			if err != nil {
				t.Fatalf("after %d addresses: %v", strings.Count(string(text), "\n"), err)
			}
			text = append(text, part[:n]...)
		}
		for address := range strings.Lines(string(text)) {
			add(strings.TrimSpace(address))
		}
	}
	for range each {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		add(address)
	}
}

func TestTheKernelDoesNotGiveAChosenPortToAConnection(t *testing.T) {
	first, err := firstEphemeral()
	if err != nil {
		t.Fatal(err)
	}
	address, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	if port := netip.MustParseAddrPort(address).Port(); int(port) >= first {
		t.Errorf("%s is among the ports from %d on that the kernel gives to connections", address, first)
	}
}

func TestAnAddressInUseIsNotGiven(t *testing.T) {
	address, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	port := int(netip.MustParseAddrPort(address).Port())
	if !unused(port) {
		t.Fatalf("%s is not free", address)
	}
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	if unused(port) {
		t.Errorf("%s counts as free although somebody receives datagrams there", address)
	}
}
