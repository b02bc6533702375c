// The handles of the C interface. A test makes a connection over a simulated client with it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pif/client/client.h"
#include "pif/client/pif.h"
#include "pif/pattern/compiled.h"

// The state that a connection shares with its files.
struct pif_errors {
  int code = PIF_OK;
  std::string text;
  std::function<bool()> wants_to_stop;  // pif_on_wait; empty: nobody asked for it
};

struct pif_connection {
  std::shared_ptr<pif_errors> errors = std::make_shared<pif_errors>();
  std::shared_ptr<pif::Client> client;  // none: connecting failed
  pif::SystemStatus status;             // the last that pif_status gave: its texts
};

// The result of a builder, compiled once; the call that uses the pattern returns its error.
struct pif_pattern {
  pif::Result<std::shared_ptr<const pif::patterns::CompiledPattern>> pattern;
};

struct pif_file {
  std::shared_ptr<pif_errors> errors;
  std::shared_ptr<pif::Client> client;  // that it came from
  pif::File file;
};
