package rest

import "github.com/gin-gonic/gin"

// call is what becomes known about a request on its way.
type call struct {
	account *account      // nil: the client has not signed in
	body    []byte        // nil: none was read
	object  string        // the keys of what the body is about
	places  chan struct{} // where the request has a place; nil: nowhere
}

const callKey = "kvnet.call"

func callOf(c *gin.Context) *call {
	if v, ok := c.Get(callKey); ok {
		if x, ok := v.(*call); ok {
			return x
		}
	}
	x := &call{}
	c.Set(callKey, x)
	return x
}

// accountOf is the account of an authenticated request.
func accountOf(c *gin.Context) *account { return callOf(c).account }

func bodyOf(c *gin.Context) []byte { return callOf(c).body }
