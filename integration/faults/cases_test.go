package faults

import "kvnet/integration/cluster"

// faults are all cases, in the order in which they run.
var faults = []fault{
	{name: "leader killed during writes", inject: killDuringWrites},
	{name: "leader killed right after a write", inject: killAfterWrite},
	{name: "leader paused for 30 s", inject: pauseLeader},
	{name: "leader paused during a write", inject: pauseDuringWrite},
	{name: "the same without generation ids", own: true, inject: pauseWithoutGenerations},
	{name: "leader stopped", inject: stopLeader},
	{name: "leader alone", inject: leaderAlone},
	{name: "all servers killed", inject: killAll},
	{name: "rules deleted while all are down", rewritten: []string{"gw2"}, inject: deleteRules},
	{name: "rolling restart", inject: rollingRestart},
	{name: "switch killed", loses: true, rewritten: []string{"w1"}, inject: killSwitch},
	{name: "cut within a bundle", inject: cutBundle},
	{name: "wrong key", inject: wrongKey},
	{name: "a name that is taken", inject: takenName},
	{name: "garbage for the gossip", inject: garbage},
	{name: "join without expect", inject: joinNobody},
	{name: "four servers, expect 3", inject: fourOfThree},
	{name: "from one server to three", own: true, inject: scaleUp},
	{name: "leader swapped for a new server", inject: swapMember},
	{name: "leader is not heard", inject: leaderNotHeard},
	{name: "leader hears nothing", inject: leaderDeaf},
	{name: "UDP cut", inject: cutProtocol(cluster.UDP)},
	{name: "TCP cut", inject: cutProtocol(cluster.TCP)},
	{name: "30 % loss", inject: packetLoss},
	{name: "switch frozen", rewritten: []string{"gw2"}, inject: freezeSwitch},
	{name: "switches reach different servers", inject: splitReach},
	{name: "leader loses switches", inject: leaderLosesSwitches},
	{name: "disk of the leader full", own: true, inject: fullDisk},
	{name: "restored backup", own: true, inject: restoreBackup},
}
