// The one translation unit that holds Boost.Process v2's definitions (BOOST_PROCESS_V2_SEPARATE_COMPILATION).
#include <algorithm>  // src.hpp uses it without including it (Boost 1.81)
//
#include <boost/process/v2/src.hpp>
