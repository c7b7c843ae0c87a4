// Package relay stands between switches and a server, forwards OpenFlow unchanged
// and records who sent what when. It can also keep switches waiting, let them in
// one by one, cut and freeze their connections.
package relay
