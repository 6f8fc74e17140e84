#include "kernels/base/result.hpp"
#include "netem/port.hpp"
#include <openssl/ssl.h>
