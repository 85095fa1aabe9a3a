// Layers that work along the steps of a sequence.
#pragma once

#include "import/keras/layers.h"

namespace orknn::importer::keras {

Result<Tensor> recurrent(LayerCall& call);  // LSTM, GRU, SimpleRNN
Result<Tensor> bidirectional(LayerCall& call);
Result<Tensor> time_distributed(LayerCall& call);
Result<Tensor> multi_head_attention(LayerCall& call);
Result<Tensor> attention(LayerCall& call);

}  // namespace orknn::importer::keras
