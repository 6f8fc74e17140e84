#pragma once
#include <torch/torch.h>
#include "scenarios/stage.hpp"
