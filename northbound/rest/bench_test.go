package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"kvnet/model"
)

// discard is a ResponseWriter that keeps nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkGet measures the handler alone: one network, and lists, beside a
// route of gin that does nothing but answer a fixed JSON.
func BenchmarkGet(b *testing.B) {
	gin.SetMode(gin.ReleaseMode)
	trivial := gin.New()
	trivial.GET("/x", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"a": 1}) })
	b.Run("trivial", func(b *testing.B) { benchmark(b, trivial, "/x") })
	for _, n := range []int{1, 10, 1000} {
		s := newBareServer(b, &faultyStore{})
		var objects []model.Object
		for i := range n {
			e, err := decodeEdge[networkJSON]([]byte(networkBody(fmt.Sprint("n", i))))
			if err != nil {
				b.Fatal(err)
			}
			objects = append(objects, e.apply(nil))
		}
		if err := s.db.Replace(2, objects); err != nil {
			b.Fatal(err)
		}
		if n == 1 {
			b.Run("one", func(b *testing.B) { benchmark(b, s.handler, networksPath+"/n0") })
			continue
		}
		b.Run(fmt.Sprint("list-", n), func(b *testing.B) { benchmark(b, s.handler, networksPath) })
	}
}

func benchmark(b *testing.B, h http.Handler, path string) {
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", adminAuth)
		h.ServeHTTP(&discard{http.Header{}}, r)
	}
}

// BenchmarkDecode measures reading and validating a network.
func BenchmarkDecode(b *testing.B) {
	body := []byte(networkBody("n"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeEdge[networkJSON](body); err != nil {
			b.Fatal(err)
		}
	}
}
