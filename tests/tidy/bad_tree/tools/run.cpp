#include "generated/version.hpp"
#include "netem/port.cpp"
#include "scenarios/stage.hpp"
