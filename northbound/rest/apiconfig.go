package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
)

const apiConfigPath = nodePath + "/api-config"

// apiServerPort is the port of an API server that is known by its name, as in
// ONOS.
const apiServerPort = 443

// resolveTimeout bounds how long a POST waits for the address of a name.
const resolveTimeout = 2 * time.Second

// lookupIPv4 finds the IPv4 addresses of a name.
func lookupIPv4(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
}

func (s *Server) apiConfigRoutes() []route {
	return []route{
		// ONOS has no way to read it.
		{method: http.MethodGet, path: apiConfigPath, output: true, handle: s.getAPIConfig},
		{method: http.MethodPost, path: apiConfigPath, input: true, output: true, handle: s.createAPIConfig},
		// The endpoint is a URL, raw or escaped.
		{method: http.MethodDelete, path: apiConfigPath + "/*endpoint", typed: true, output: true, handle: s.deleteAPIConfig},
	}
}

// getAPIConfig shows the configuration without its secrets.
//
// @ID          getAPIConfig
// @Summary     How the Kubernetes API is reached
// @Description The token and the client's key are left out.
// @Tags        api-config
// @Produce     json
// @Success     200 {object} apiConfigJSON "the configuration"
// @Failure     404
// @x-added     true
// @Router      /onos/kubevirtnode/api-config [get]
func (s *Server) getAPIConfig(c *gin.Context) error {
	config := s.db.Snapshot().APIConfig()
	if config == nil {
		return refuse(http.StatusNotFound, "KubeVirt API config is not found")
	}
	return s.answer(c, http.StatusOK, encodeAPIConfig(config))
}

// errAPIConfigUnique refuses a second configuration.
var errAPIConfigUnique = badRequest("KubeVirt API config should be unique: there is one already, which must be deleted first")

// createAPIConfig stores the configuration, of which there is one.
//
// @ID          createAPIConfig
// @Summary     Say how the Kubernetes API is reached
// @Description There is one configuration; another one is refused with 400. With apiServerFqdn, the address of that name and the port 443 are stored in the place of ipAddress and port.
// @Tags        api-config
// @Accept      json
// @Produce     json
// @Param       config body apiConfigJSON true "the configuration"
// @Success     201 "the configuration is stored"
// @Failure     409,507
// @Router      /onos/kubevirtnode/api-config [post]
func (s *Server) createAPIConfig(c *gin.Context) error {
	body, err := decodeEdge[apiConfigJSON](bodyOf(c))
	if err != nil {
		return err
	}
	config := body.apply(nil).(*model.APIConfig)
	about(c, config.Endpoint())
	if s.db.Snapshot().APIConfig() != nil {
		return errAPIConfigUnique
	}
	warning := s.resolveAPIServer(c.Request.Context(), config)
	about(c, config.Endpoint()) // a name has become an address
	ctx, cancel := s.storeContext(c)
	defer cancel()
	rev, err := s.store.Create(ctx, config)
	if errors.Is(err, store.ErrExists) {
		return errAPIConfigUnique
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	if warning != "" {
		warn(c, warning)
	}
	c.Header("Location", location(c.Request, apiConfigPath))
	empty(c, http.StatusCreated)
	return nil
}

// resolveAPIServer puts the address of the API server's name in the place of the
// written one. As in ONOS, a name without an IPv4 address changes nothing; the
// sentence that it returns says so.
func (s *Server) resolveAPIServer(ctx context.Context, config *model.APIConfig) (warning string) {
	name := text(config.APIServerFQDN)
	if name == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addresses, err := s.lookup(ctx, name)
	if err != nil || len(addresses) == 0 {
		s.log.Warn("the name of the Kubernetes API server has no IPv4 address; the written address is used",
			"name", shown(name), "endpoint", config.Endpoint(), "error", err)
		return fmt.Sprintf("apiServerFqdn %q could not be resolved to an IPv4 address; ipAddress and port are used as written", shown(name))
	}
	config.IPAddress, config.Port = addresses[0].Unmap(), apiServerPort
	return ""
}

// deleteAPIConfig removes the configuration if it is that of the endpoint. As in
// ONOS the answer is 304 only if there is none at all.
//
// @ID          deleteAPIConfig
// @Summary     Forget how the Kubernetes API is reached
// @Description A configuration of another endpoint is left alone; the answer is 204 all the same, as in ONOS, with a Warning header.
// @Tags        api-config
// @Accept      json
// @Produce     json
// @Param       endpoint path string true "scheme://address:port in lower case, raw or escaped" extensions(x-example=https://192.0.2.250:6443)
// @Success     204 "the configuration is deleted, or is that of another endpoint"
// @Success     304 "there is no configuration"
// @Failure     400,409,507
// @Router      /onos/kubevirtnode/api-config/{endpoint} [delete]
func (s *Server) deleteAPIConfig(c *gin.Context) error {
	endpoint, err := param(c, "endpoint")
	if err != nil {
		return err
	}
	endpoint = strings.TrimPrefix(endpoint, "/")
	ctx, cancel := s.storeContext(c)
	defer cancel()
	rev, err := s.removeAPIConfig(ctx, endpoint)
	var other *otherEndpointError
	switch {
	case errors.Is(err, store.ErrNotFound):
		empty(c, http.StatusNotModified)
		return nil
	case errors.As(err, &other):
		warn(c, other.Error())
	case err != nil:
		return storeFault(err)
	default:
		s.settle(c, rev)
	}
	empty(c, http.StatusNoContent)
	return nil
}

// otherEndpointError says that the configuration is not that of the endpoint.
type otherEndpointError struct{ stored, asked string }

func (e *otherEndpointError) Error() string {
	return fmt.Sprintf("nothing was deleted: the endpoint is %s, not %s", e.stored, shown(e.asked))
}

// removeAPIConfig asks the store itself, not this server's copy: a configuration
// that was just written through another server is there.
func (s *Server) removeAPIConfig(ctx context.Context, endpoint string) (revision int64, err error) {
	for attempt := 1; ; attempt++ {
		o, err := s.store.Get(ctx, model.KindAPIConfig, model.APIConfigKey)
		if err != nil {
			return 0, err
		}
		if stored := o.(*model.APIConfig).Endpoint(); stored != endpoint {
			return 0, &otherEndpointError{stored, endpoint}
		}
		revision, err = s.store.Put(ctx, []store.Write{{Old: o}})
		if !errors.Is(err, store.ErrConflict) || attempt == putAttempts {
			return revision, err
		}
	}
}
