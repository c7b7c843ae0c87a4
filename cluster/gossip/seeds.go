package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// resolveAll turns host:port into addresses, all names at a time. Names are
// asked for anew each time, because addresses of servers change.
func (g *Gossip) resolveAll(ctx context.Context, seeds []string) (out []string, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found := make([][]netip.Addr, len(seeds))
	failed := make([]error, len(seeds))
	var wg sync.WaitGroup
	for i, seed := range seeds {
		host, _, _ := splitHostPort(seed) // checked at the start
		if a, err := netip.ParseAddr(host); err == nil {
			found[i] = []netip.Addr{a}
			continue
		}
		wg.Go(func() { found[i], failed[i] = g.c.tuning.lookup(ctx, host) })
	}
	wg.Wait()
	for i, seed := range seeds {
		if failed[i] != nil {
			errs = append(errs, fmt.Errorf("find the address of %s: %w", seed, failed[i]))
		}
		_, port, _ := splitHostPort(seed)
		for _, a := range found[i] {
			out = append(out, net.JoinHostPort(a.Unmap().String(), strconv.Itoa(int(port))))
		}
	}
	return out, errs
}

// resolveOne finds one address of a host, an IPv4 address if there is one.
func (g *Gossip) resolveOne(ctx context.Context, host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addrs, err := g.c.tuning.lookup(ctx, host)
	if err != nil {
		return "", fmt.Errorf("find its address: %w", err)
	}
	if len(addrs) == 0 {
		return "", errors.New("the name has no address")
	}
	for _, a := range addrs {
		if a.Unmap().Is4() {
			return a.Unmap().String(), nil
		}
	}
	return addrs[0].String(), nil
}

func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// keepSeeds writes the addresses of the others to the seed file if they differ
// from kept, and returns what the file holds.
func (g *Gossip) keepSeeds(kept []string, members []Member) []string {
	var now []string
	for _, m := range members {
		if m.State != Left && m.Name != g.c.Name && len(now) < maxTargets {
			now = append(now, m.Address)
		}
	}
	slices.Sort(now)
	if len(now) == 0 || slices.Equal(now, kept) {
		return kept
	}
	if err := writeFile(g.c.SeedFile, []byte(strings.Join(now, "\n")+"\n")); err != nil {
		g.log("the addresses of the other servers can't be remembered", "err", err)
		return kept
	}
	return now
}

// readSeeds reads a seed file. One that doesn't exist holds nothing.
func readSeeds(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		a, err := netip.ParseAddrPort(strings.TrimSpace(line))
		if err != nil {
			return out, fmt.Errorf("%s: %w", file, err)
		}
		if len(out) < maxTargets {
			out = append(out, a.String())
		}
	}
	return out, nil
}

// writeFile replaces a file at once: it holds the old or the new content
// whatever happens meanwhile.
func writeFile(file string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
