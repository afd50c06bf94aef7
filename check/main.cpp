// SPDX-License-Identifier: Apache-2.0
#include "check/program.hpp"

int main(int argc, char** argv) { return driftd::check::run(argc, argv); }
