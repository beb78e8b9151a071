//go:build !tenure_protocol_3

package seat

// Protocol is what holding a lease means in this build (V1, V3). It is raised
// only when holding comes to mean what a build before could not honour.
const Protocol = 4
