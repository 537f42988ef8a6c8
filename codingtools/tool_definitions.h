#pragma once
#include <boost/json/array.hpp>
#include "codingtools/toolset.h"
namespace stitchkit {
boost::json::array toolDefinitions(const Toolset& toolset);
}
