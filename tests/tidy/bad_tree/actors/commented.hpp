#pragma once
// #include "netem/fabric.hpp"
/* #include "netem/fabric.hpp"
#include "netem/fabric.hpp" */
/* one */ #include "kernels/base/result.hpp" // fine
#define WHICH "netem/fabric.hpp"
#include WHICH
