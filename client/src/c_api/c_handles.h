// What the handles of the C interface hold. A test makes a connection over a simulated client with it.
#pragma once

#include <memory>
#include <string>

#include "pif/client/client.h"
#include "pif/client/pif.h"
#include "pif/pattern/pattern.h"

struct pif_errors {
  int code = PIF_OK;
  std::string text;
};

struct pif_connection {
  std::shared_ptr<pif_errors> errors = std::make_shared<pif_errors>();  // shared with its files
  std::unique_ptr<pif::Client> client;                                  // none: connecting failed
};

// What a builder gave; its error is told by the call that the pattern is used in.
struct pif_pattern {
  pif::Result<pif::patterns::Pattern> pattern;
};

struct pif_file {
  std::shared_ptr<pif_errors> errors;
  pif::File file;
};
