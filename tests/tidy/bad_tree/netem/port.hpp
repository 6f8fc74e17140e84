// A header without its guard.
#include "actors/group.hpp"
