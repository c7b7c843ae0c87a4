'use strict';

// What stands before kvnet's paths in the address of this page: a reverse proxy may
// serve kvnet below a path of its own. The descriptions don't know of it.
const prefix = location.pathname.replace(/\/onos\/v1\/docs\/[^/]*$/, '');

// belowPrefix puts the prefix into the base path of a description.
function belowPrefix(text) {
  const description = JSON.parse(text);
  description.basePath = prefix + description.basePath;
  return JSON.stringify(description);
}

const ours = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        // The page would forget the password when another description is chosen.
        restoreAuthorization: () => () => {},
      },
    },
    spec: {
      wrapActions: {
        updateSpec: (update) => (text) => update(text ? belowPrefix(text) : text),
      },
    },
  },
});

window.ui = SwaggerUIBundle({
  dom_id: '#page',
  urls: [
    { name: 'ONOS: KubeVirt Networking', url: 'apis/onos/kubevirtnetworking/swagger.json' },
    { name: 'ONOS: KubeVirt Node', url: 'apis/onos/kubevirtnode/swagger.json' },
    { name: 'kvnet: what it adds', url: 'apis/kvnet/v1/swagger.json' },
  ],
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  plugins: [ours],
  layout: 'StandaloneLayout',
  // Only what Authorize was given is sent. A browser would add what it remembers of
  // another page, and ask with a window of its own after a 401.
  requestInterceptor: (request) => {
    if (!request.loadSpec) request.credentials = 'omit';
    return request;
  },
});
