// For test binaries that use gRPC: it logs every refusal that a test provokes, unless it is told
// otherwise before it starts.
#include <cstdlib>

namespace {

[[maybe_unused]] const int quiet = setenv("GRPC_VERBOSITY", "NONE", 0);

} // namespace
