#include "netem/port.hpp"

#include "kernels/base/result.hpp"

#include <grpcpp/grpcpp.h>
