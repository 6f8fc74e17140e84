#pragma once
#include "scenarios/stage.hpp"

#include <torch/torch.h>
