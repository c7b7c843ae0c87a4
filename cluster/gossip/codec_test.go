package gossip

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

var fullMeta = Meta{
	ClusterID: "c1", Instance: 1<<63 + 5, REST: "10.0.0.1:8181", OpenFlow: "10.0.0.1:6653",
	PeerURL: "http://kvnet-0.kvnet:2380", Version: "v1.2.3", HasData: true, Expect: 3,
}

func TestMetaRoundTrip(t *testing.T) {
	for _, m := range []Meta{{}, fullMeta} {
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeMeta(b)
		if err != nil || got != m {
			t.Errorf("%+v became %+v, %v", m, got, err)
		}
		if got, err := decodeMeta(append(b, "later"...)); err != nil || got != m {
			t.Errorf("with something of a later version: %+v, %v", got, err)
		}
		for i := range b {
			if _, err := decodeMeta(b[:i]); err == nil {
				t.Errorf("%d of %d bytes were read", i, len(b))
			}
		}
	}
	long := strings.Repeat("x", 255)
	for _, m := range []Meta{{REST: long + "x"}, {REST: long, OpenFlow: long}, {Version: "a\nb"}, {Expect: -1}, {Expect: maxExpect + 1}} {
		if b, err := m.encode(); err == nil {
			t.Errorf("%+v became %d bytes", m, len(b))
		}
	}
}

func FuzzMeta(f *testing.F) {
	b, _ := fullMeta.encode()
	f.Add(b)
	f.Add([]byte{metaVersion, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil || len(again) > memberlist.MetaMaxSize {
			t.Fatalf("%+v can't be encoded again: %v", m, err)
		}
		if got, err := decodeMeta(again); err != nil || got != m {
			t.Fatalf("%+v became %+v, %v", m, got, err)
		}
	})
}

func TestFrameRoundTrip(t *testing.T) {
	frames := []frame{
		{kind: frameRequest, id: 7, from: "n1", instance: 1, to: 2, method: "form/ask", timeout: 3 * time.Second, payload: []byte("x")},
		{kind: frameAnswer, id: 7, from: "n2", to: 1},
		{kind: frameLeave, from: "n2", instance: 9},
	}
	for _, want := range frames {
		b, err := want.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeFrame(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
		for i := range b {
			if _, err := decodeFrame(b[:i]); err == nil {
				t.Errorf("%d of %d bytes were read", i, len(b))
			}
		}
		if _, err := decodeFrame(append(b, 0)); err == nil {
			t.Error("a byte too many was read")
		}
	}
}

func FuzzFrame(f *testing.F) {
	b, _ := frame{kind: frameRequest, id: 7, from: "n1", instance: 1, method: "form/ask", timeout: time.Second, payload: []byte("x")}.encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeFrame(b)
		if err != nil {
			return
		}
		again, err := got.encode()
		if err != nil || string(again) != string(b) {
			t.Fatalf("%x became %x, %v", b, again, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(identity{name: "n1", instance: 5}.hello())
	f.Fuzz(func(t *testing.T, b []byte) {
		name, _, raw, err := readHello(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		if checkName(name) != nil || !strings.HasPrefix(string(b), string(raw)) {
			t.Fatalf("%q from %x", name, b)
		}
	})
}

func TestReadKey(t *testing.T) {
	dir := t.TempDir()
	good := base64.StdEncoding.EncodeToString(testKey)
	tests := map[string]struct{ content, says string }{
		"good":         {good + "\n", ""},
		"no newline":   {good, ""},
		"empty":        {"\n", "it is empty"},
		"two lines":    {good + "\n" + good + "\n", "more than one line"},
		"not base64":   {"secret stuff!\n", "is not base64"},
		"short":        {base64.StdEncoding.EncodeToString(testKey[:16]) + "\n", "16 bytes instead of 32"},
		"large":        {strings.Repeat("A", 5000), "5000 bytes"},
		"doesn't show": {good + "?", "is not base64"},
	}
	for name, tt := range tests {
		file := filepath.Join(dir, "key")
		if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := ReadKey(file)
		switch {
		case tt.says == "":
			if err != nil || string(key) != string(testKey) {
				t.Errorf("%s: %v", name, err)
			}
		case err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), file):
			t.Errorf("%s: %v", name, err)
		case strings.Contains(err.Error(), good) || strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
	if _, err := ReadKey(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that doesn't exist was read")
	}
}

func TestCheckKey(t *testing.T) {
	for listen, ok := range map[string]bool{
		"127.0.0.1:7946": true, "[::1]:7946": true, "127.9.9.9:1": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:7946": false, "[::]:7946": false, "10.0.0.1:7946": false, "localhost:7946": false, "x": false,
	} {
		if err := CheckKey(listen, nil); (err == nil) != ok {
			t.Errorf("%s without a key: %v", listen, err)
		}
	}
	if err := CheckKey("0.0.0.0:7946", testKey); err != nil {
		t.Error(err)
	}
}

func TestConfigRefused(t *testing.T) {
	for says, c := range map[string]Config{
		"needs one":             {},
		"at most":               {Name: strings.Repeat("x", maxName+1)},
		"characters":            {Name: "a\nb"},
		"neither":               {Name: "a", Preset: "wan"},
		"16 bytes":              {Name: "a", Key: testKey[:16]},
		"needs a key":           {Name: "a", Listen: "0.0.0.0:0"},
		"HOST:PORT":             {Name: "a", Join: []string{"b"}},
		"REST address":          {Name: "a", Meta: Meta{REST: strings.Repeat("x", 300)}},
		"take 5":                {Name: "a", Meta: Meta{REST: strings.Repeat("x", 250), OpenFlow: strings.Repeat("x", 250)}},
		"must be an IP address": {Name: "a", Listen: "localhost:0"},
	} {
		g, err := Start(t.Context(), c)
		if err == nil {
			g.shutdown()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}
