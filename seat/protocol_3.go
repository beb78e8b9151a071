//go:build tenure_protocol_3

package seat

// Protocol of a build that tests run as the older half of a fleet (V1). No
// release is built with the tag.
const Protocol = 3
