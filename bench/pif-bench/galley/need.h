// What a benchmark cannot go on without.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "harness.h"
#include "pif/base/result.h"
#include "pif/client/client.h"

namespace pif::bench {

// The value; ends the program with the error's text if there is none.
template <class T>
T need(pif::Result<T> result) {
  if (!result) die(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

inline Client connect_to(const std::string& folder, DataPath data_path = DataPath::kAuto,
                         const std::string& route = "auto") {
  ConnectOptions options;
  options.where = folder;
  options.route = route;
  options.data_path = data_path;
  options.timeout = std::chrono::seconds(120);
  return need(Client::connect(options));
}

}  // namespace pif::bench
