/* The same for the golden plans of products. */
#define PATTERNS "test_products.c"
#include "test_cuda_plans.c"
