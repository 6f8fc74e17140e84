#include "kernels/base/result.hpp"
#include "netem/port.hpp"
#include <grpcpp/grpcpp.h>
