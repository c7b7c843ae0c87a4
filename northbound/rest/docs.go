package rest

import (
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"kvnet/openapi"
)

const docsPath = "/onos/v1/docs"

// pagePolicy lets the page load what this server has, and nothing else. Swagger UI
// sets styles within its elements and shows images that it carries itself.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docsRoutes are the pages about the calls, where ONOS has them. They need no
// credentials: there are no secrets in them, and a browser that was asked for a
// password here would send it to this server for every other page that it shows.
func (s *Server) docsRoutes() []route {
	return []route{
		{method: http.MethodGet, path: docsPath, public: true, stateless: true, handle: s.docsPage},
		{method: http.MethodGet, path: docsPath + "/:file", public: true, stateless: true, handle: s.docsFile},
		{method: http.MethodGet, path: docsPath + "/apis", public: true, stateless: true, output: true, handle: s.listAPIs},
		{method: http.MethodGet, path: docsPath + "/apis/:context/:app/swagger.json", public: true, stateless: true, output: true, handle: s.describeAPI},
	}
}

// docsPage is the page at /onos/v1/docs/. What it loads stands beside it, so it
// has to be asked for with the slash at the end.
//
// @ID       getDocs
// @Summary  The page that shows the descriptions
// @Tags     docs
// @Produce  text/html,application/json
// @Success  200 {file} file "the page"
// @Success  307 "the page is at the same path with a slash at its end"
// @Failure  503
// @x-public true
// @x-added  true
// @Router   /onos/v1/docs [get]
func (s *Server) docsPage(c *gin.Context) error {
	path, _, _ := strings.Cut(c.Request.RequestURI, "?")
	if !strings.HasSuffix(path, "/") {
		// Relative, because a proxy may have another path for it.
		c.Header("Location", "docs/")
		empty(c, http.StatusTemporaryRedirect)
		return nil
	}
	return sendPageFile(c, "index.html")
}

// docsFile is one of the files that the page loads.
//
// @ID       getDocsFile
// @Summary  A file of the page
// @Tags     docs
// @Produce  text/html,text/javascript,text/css,image/png,application/json
// @Param    file path string true "name of the file" extensions(x-example=index.html)
// @Success  200 {file} file "the file"
// @Success  304 "the client has this version of the file"
// @Failure  400,404,503
// @x-public true
// @x-added  true
// @Router   /onos/v1/docs/{file} [get]
func (s *Server) docsFile(c *gin.Context) error {
	name, err := param(c, "file")
	if err != nil {
		return err
	}
	return sendPageFile(c, name)
}

func sendPageFile(c *gin.Context, name string) error {
	f, err := openapi.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(http.StatusNotFound, "HTTP 404 Not Found: the page has no file %s", shown(name))
	} else if err != nil {
		return err
	}
	defer f.Close()
	h := c.Writer.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("ETag", `"`+f.Tag+`"`)
	h.Set("Cache-Control", "no-cache") // ask, and get 304 unless kvnet is another version
	release(c)
	http.ServeContent(c.Writer, c.Request, name, time.Time{}, f)
	return nil
}

// listAPIs lists the titles of the descriptions, as ONOS does.
//
// @ID       listAPIs
// @Summary  Titles of the descriptions
// @Tags     docs
// @Produce  json
// @Success  200 {object} object{apis=[]string} "the titles"
// @Failure  503
// @x-public true
// @x-added  true
// @Router   /onos/v1/docs/apis [get]
func (s *Server) listAPIs(c *gin.Context) error {
	titles := []string{}
	for _, d := range openapi.Descriptions() {
		titles = append(titles, d.Title)
	}
	return s.answer(c, http.StatusOK, map[string]any{"apis": titles})
}

// describeAPI is a description, by the context path of what it describes.
//
// @ID          getAPI
// @Summary     A description, in the form of Swagger 2.0
// @Description There are onos/kubevirtnetworking, onos/kubevirtnode and kvnet/v1.
// @Tags        docs
// @Produce     json
// @Param       context path string true "first part of the context path"  extensions(x-example=kvnet)
// @Param       app     path string true "second part of the context path" extensions(x-example=v1)
// @Success     200 {object} object{swagger=string} "the description"
// @Failure     400,404,503
// @x-public    true
// @x-added     true
// @Router      /onos/v1/docs/apis/{context}/{app}/swagger.json [get]
func (s *Server) describeAPI(c *gin.Context) error {
	parent, err := param(c, "context")
	if err != nil {
		return err
	}
	app, err := param(c, "app")
	if err != nil {
		return err
	}
	key := parent + "/" + app
	for _, d := range openapi.Descriptions() {
		if d.Key == key {
			return answerRaw(c, d.JSON)
		}
	}
	return refuse(http.StatusNotFound, "REST API not found for /%s", shown(key))
}

// answerRaw writes JSON that is written already.
func answerRaw(c *gin.Context, content []byte) error {
	c.Header("Content-Type", jsonType)
	c.Header("Content-Length", strconv.Itoa(len(content)))
	c.Status(http.StatusOK)
	release(c)
	_, _ = c.Writer.Write(content) // the client may be gone
	return nil
}
