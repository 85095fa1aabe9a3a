#include "toolkit/accuracy.h"
namespace orknn::toolkit {
std::string accuracy_html(const AccuracyReport& report) { return "<!doctype html><title>" + report.model + "</title>"; }
}
