elementclass E{$a|input->X($a)->output||
$a,$b|
input->Y($a,$b)->output}a::A->E(1)->{input->Z->output}->B;;



b::B;{A};
