// A swarm's certificates, as make_seeds.cpp has written them; both keys are lost.
#pragma once

#include <cstdint>

namespace shoal::fuzz {

inline constexpr std::int64_t swarm_now = 1795294800000000000;
inline constexpr const char* swarm_certificate = R"(-----BEGIN CERTIFICATE-----
MIIBITCB1KADAgECAhEAxmNqBqlys9DrkUJF+WlFeTAFBgMrZXAwDzENMAsGA1UE
AwwEcmVlZjAeFw0yNjExMjEyMDU1MDBaFw0yNzExMjEyMTAwMDBaMA8xDTALBgNV
BAMMBHJlZWYwKjAFBgMrZXADIQCUfMj86xsh52nPB3ezAjXFUqzvNXRgkKpw80SP
N3Ipp6NFMEMwEgYDVR0TAQH/BAgwBgEB/wIBADAOBgNVHQ8BAf8EBAMCAQYwHQYD
VR0OBBYEFD2Ybssd6zvlL2qDiqxTRs+8nIrgMAUGAytlcANBACrWI5jy+Bh+dERw
JkfqNgj15kJgkTUlzSjVlnr8z3XIA0gWkhqjaQEHGfwgz9ojuQyyClz1Z9TeDLc8
zpzryQc=
-----END CERTIFICATE-----
)";
inline constexpr const char* node_certificate = R"(-----BEGIN CERTIFICATE-----
MIIBcTCCASOgAwIBAgIRANzQ85vlJ1mhpgxOgZxIWwEwBQYDK2VwMA8xDTALBgNV
BAMMBHJlZWYwHhcNMjYxMTIxMjA1NTAwWhcNMjYxMjIxMjEwMDAwWjAQMQ4wDAYD
VQQDDAVsYWItMzAqMAUGAytlcAMhAPdvLv0iqVy5gC3BHUbVFsvkzSFcMVl21MMJ
C4+STHTBo4GSMIGPMAwGA1UdEwEB/wQCMAAwDgYDVR0PAQH/BAQDAgeAMB0GA1Ud
JQQWMBQGCCsGAQUFBwMCBggrBgEFBQcDATAdBgNVHQ4EFgQU++g4CFphYacWW+E0
a6Y6OZLmjcUwHwYDVR0jBBgwFoAUPZhuyx3rO+UvaoOKrFNGz7yciuAwEAYDVR0R
BAkwB4IFbGFiLTMwBQYDK2VwA0EA4Z/0lCvPMMeelM6BBdHacGWw22K//eF0YbvW
bfEXsFkkN5NbQlq1l8BL5kB3WnVXDjkuGVZeQaFpXOGG7toFBw==
-----END CERTIFICATE-----
)";

} // namespace shoal::fuzz
