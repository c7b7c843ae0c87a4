package rest

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
)

// object is an edge type of one stored object.
type object interface {
	edge
	// key is the object's key in the store.
	key() string
	// apply is the object that is stored in the place of old; old is nil for a
	// new one.
	apply(old model.Object) model.Object
}

// warner is an object of which not all has an effect: what doesn't, is said in
// the answer to a write of it.
type warner interface{ warnings() []string }

func warnOf(c *gin.Context, o any) {
	w, ok := o.(warner)
	if !ok {
		return
	}
	for _, message := range w.warnings() {
		warn(c, message)
	}
}

// resource is a kind of object with the calls that kvnet adds to ONOS's: POST to
// the collection, GET, PUT and DELETE of one. ONOS itself has only the GET of most
// collections.
type resource struct {
	kind    model.Kind
	path    string // of the collection
	wrapper string // ONOS's key of the list
	name    string // in sentences
	keyName string // the field that is the key
	decode  func(body []byte) (object, error)
	// parseKey makes the store's key from the path's; ok is false if there
	// can't be such an object. nil: they are equal.
	parseKey func(string) (key string, ok bool)
}

// added are kvnet's own resources: ONOS has no writes for these kinds.
var added = []resource{
	{
		kind: model.KindRouter, path: networkingPath + "/router", wrapper: "routers", name: "Router", keyName: "name",
		decode: decodeObject[routerJSON],
	},
	{
		kind: model.KindFloatingIP, path: networkingPath + "/floating-ip", wrapper: "floating-ips", name: "Floating IP", keyName: "id",
		decode: decodeObject[floatingIPJSON],
	},
	{
		kind: model.KindLoadBalancer, path: networkingPath + "/loadbalancer", wrapper: "loadBalancers", name: "Load balancer", keyName: "name",
		decode: decodeObject[loadBalancerJSON],
	},
	{
		kind: model.KindSecurityGroup, path: networkingPath + "/security-group", wrapper: "security-groups", name: "Security group", keyName: "id",
		decode: decodeObject[securityGroupJSON],
	},
	{
		kind: model.KindPort, path: networkingPath + "/port", wrapper: "ports", name: "Port", keyName: "macAddress",
		decode: decodeObject[portJSON],
		parseKey: func(s string) (string, bool) {
			m, err := model.ParseMAC(s)
			return m.String(), err == nil
		},
	},
}

func decodeObject[T any, E interface {
	*T
	object
}](body []byte) (object, error) {
	return decodeEdge[T, E](body)
}

func (s *Server) addedRoutes() []route {
	var out []route
	for i := range added {
		r := &added[i]
		with := func(f func(*gin.Context, *resource) error) func(*gin.Context) error {
			return func(c *gin.Context) error { return f(c, r) }
		}
		out = append(out,
			route{method: http.MethodGet, path: r.path, output: true, handle: with(s.listAdded)},
			route{method: http.MethodPost, path: r.path, input: true, output: true, handle: with(s.createAdded)},
			route{method: http.MethodGet, path: r.path + "/:key", output: true, handle: with(s.getAdded)},
			route{method: http.MethodPut, path: r.path + "/:key", input: true, output: true, handle: with(s.updateAdded)},
			route{method: http.MethodDelete, path: r.path + "/:key", handle: with(s.deleteAdded)},
		)
	}
	return out
}

func (r *resource) absent(key string) error {
	return refuse(http.StatusNotFound, "%s is not found for %s", r.name, shown(key))
}

// key is the store's key of the object that the path names.
func (r *resource) key(c *gin.Context) (string, error) {
	key, err := param(c, "key")
	if err != nil || r.parseKey == nil {
		return key, err
	}
	k, ok := r.parseKey(key)
	if !ok {
		return "", r.absent(key)
	}
	return k, nil
}

func (s *Server) listAdded(c *gin.Context, r *resource) error {
	return s.answerList(c, r.wrapper, r.kind)
}

func (s *Server) getAdded(c *gin.Context, r *resource) error {
	key, err := r.key(c)
	if err != nil {
		return err
	}
	db := s.db.Snapshot()
	o := db.Get(r.kind, key)
	if o == nil {
		return r.absent(key)
	}
	return s.answerObject(c, db, o)
}

func (s *Server) createAdded(c *gin.Context, r *resource) error {
	o, err := r.decode(bodyOf(c))
	if err != nil {
		return err
	}
	about(c, o.key())
	ctx, cancel := s.storeContext(c)
	defer cancel()
	rev, err := s.store.Create(ctx, o.apply(nil))
	if errors.Is(err, store.ErrExists) {
		return refuse(http.StatusConflict, "%s already exists", shown(o.key()))
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	warnOf(c, o)
	c.Header("Location", location(c.Request, r.path, o.key()))
	empty(c, http.StatusCreated)
	return nil
}

func (s *Server) updateAdded(c *gin.Context, r *resource) error {
	key, err := r.key(c)
	if err != nil {
		return err
	}
	o, err := r.decode(bodyOf(c))
	if err != nil {
		return err
	}
	if o.key() != key {
		return badRequest("%s %q is not %q of the path", r.keyName, shown(o.key()), shown(key))
	}
	ctx, cancel := s.storeContext(c)
	defer cancel()
	rev, err := s.store.Update(ctx, r.kind, key, func(old model.Object) (model.Object, error) {
		return o.apply(old), nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return r.absent(key)
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	warnOf(c, o)
	empty(c, http.StatusOK)
	return nil
}

func (s *Server) deleteAdded(c *gin.Context, r *resource) error {
	key, err := r.key(c)
	if err != nil {
		return err
	}
	ctx, cancel := s.storeContext(c)
	defer cancel()
	rev, err := s.store.Delete(ctx, r.kind, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r.absent(key)
	case errors.Is(err, store.ErrInUse):
		return refuse(http.StatusConflict, "%s %s is still in use", r.name, shown(key))
	case err != nil:
		return storeFault(err)
	}
	s.settle(c, rev)
	empty(c, http.StatusNoContent)
	return nil
}
