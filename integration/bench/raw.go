package bench

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// rawClient sends requests that were made before and reads answers no further
// than it must. net/http's client costs more than the servers that it measures,
// and shares the processors with them.
type rawClient struct {
	conn net.Conn
	r    *bufio.Reader
}

func dialRaw(address string) (*rawClient, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return &rawClient{conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

// rawRequest is a request as it stands on the wire, with the admin's account.
func rawRequest(method, path, body string) []byte {
	r := method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic " +
		base64.StdEncoding.EncodeToString([]byte("onos:rocks")) + "\r\n"
	if body != "" {
		r += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return []byte(r + "\r\n" + body)
}

// do sends a request and reads the answer, which must have this status and say
// its length.
func (c *rawClient) do(request []byte, status int) error {
	if err := c.conn.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	if _, err := c.conn.Write(request); err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if !strings.HasPrefix(line, "HTTP/1.1 "+strconv.Itoa(status)+" ") {
		return fmt.Errorf("the answer is %q, not %d", strings.TrimSpace(line), status)
	}
	length := -1
	for {
		header, err := c.r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read an answer: %w", err)
		}
		text := strings.TrimRight(string(header), "\r\n")
		if text == "" {
			break
		}
		if value, ok := strings.CutPrefix(text, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return fmt.Errorf("read an answer: length %q", value)
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("the answer %q does not say its length", strings.TrimSpace(line))
	}
	if _, err := c.r.Discard(length); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return nil
}

// rates are numbers of something done each second, again and again.
type rates []float64

func (r rates) at(q float64) float64 {
	s := slices.Sorted(slices.Values(r))
	return s[int(q*float64(len(s)-1)+0.5)]
}

func (r rates) spread() string {
	return fmt.Sprintf("median %.0f/s, best %.0f/s, worst %.0f/s of %d", r.at(0.5), r.at(1), r.at(0), len(r))
}

// over is the median of the ratios of each round. What disturbs the machine for
// longer than a round disturbs both sides of its ratio.
func (r rates) over(other rates) float64 {
	var ratios rates
	for i := range r {
		ratios = append(ratios, r[i]/other[i])
	}
	return ratios.at(0.5)
}

// rate has all clients do work for a round (restRound), each as often as it can, and returns
// how often all did it in a second.
func rate(ctx context.Context, work func(client, n int) error) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, restRound)
	defer cancel()
	var wg sync.WaitGroup
	var done atomic.Int64
	failed := make(chan error, clients)
	began := time.Now()
	for client := range clients {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := work(client, n); err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	select {
	case err := <-failed:
		return 0, err
	default:
	}
	return float64(done.Load()) / took.Seconds(), nil
}
