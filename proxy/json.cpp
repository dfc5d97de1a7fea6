#include <boost/json/src.hpp>  // Boost.JSON, compiled once
