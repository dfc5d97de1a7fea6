#include <boost/json/src.hpp>  // Boost.JSON, compiled once for tests whose folder does not bring it
